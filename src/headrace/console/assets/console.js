// What has to happen in the browser itself: copying, and keys.

function hrCopy(text, button) {
  const done = () => {
    button.classList.add("hr-copied");
    setTimeout(() => button.classList.remove("hr-copied"), 1500);
  };
  if (navigator.clipboard && window.isSecureContext) {
    navigator.clipboard.writeText(text).then(done);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  done();
}

(() => {
  let leading = false;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      const search = document.querySelector(".hr-search input");
      if (search) {
        event.preventDefault();
        search.focus();
      }
    } else if (leading) {
      document.querySelector(`.hr-nav-link[data-key="${CSS.escape(event.key)}"]`)?.click();
      leading = false;
    } else if (event.key === "g") {
      leading = true;
      setTimeout(() => (leading = false), 1500);
    }
  });
})();
