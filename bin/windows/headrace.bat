@echo off
rem Headrace's own command; `headrace help` lists what it does. Sets itself up on first use.
setlocal
for %%I in ("%~dp0..\..") do set "ROOT=%%~fI"
call "%~dp0environment.bat" "%ROOT%"
if not "%ERRORLEVEL%"=="0" exit /b 1
"%ROOT%\.venv\Scripts\python.exe" -P -m headrace.cli %*
exit /b %ERRORLEVEL%
