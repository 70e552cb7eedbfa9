"""The mind of the transaction coordinator: who may write under which transactional id, and how transactions end."""
