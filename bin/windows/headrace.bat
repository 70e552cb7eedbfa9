@echo off
rem Headrace's own command; `headrace help` lists what it does. Sets itself up on first use.
setlocal
for %%I in ("%~dp0..\..") do set "ROOT=%%~fI"
set "READY="
if exist "%ROOT%\.venv\Scripts\python.exe" if not exist "%ROOT%\.venv\installed\core.unfinished" (
    fc /b "%ROOT%\requirements\core.lock" "%ROOT%\.venv\installed\core.lock" >nul 2>&1 && set "READY=1"
)
if not defined READY call :setup || exit /b 1
"%ROOT%\.venv\Scripts\python.exe" -P -m headrace.cli %*
exit /b %ERRORLEVEL%

:setup
set "PYTHON=%HEADRACE_PYTHON%"
if not defined PYTHON for %%P in (python.exe python3.exe py.exe) do if not defined PYTHON (
    %%P -c "import sys; sys.exit(sys.version_info < (3, 11))" >nul 2>&1 && set "PYTHON=%%P"
)
if not defined PYTHON (
    echo Headrace needs Python 3.11 or newer, and no python on your PATH is one. 1>&2
    echo Install Python 3.11 or newer, or set HEADRACE_PYTHON to its path. 1>&2
    exit /b 1
)
set "PYTHONPATH=%ROOT%\src"
"%PYTHON%" -P -m headrace.cli.bootstrap "%ROOT%" .venv core "%HEADRACE_PYTHON%"
set "PYTHONPATH="
exit /b %ERRORLEVEL%
