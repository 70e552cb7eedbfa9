@echo off
rem Kafka's name for this tool: sets itself up as headrace.bat does and runs it.
setlocal
set "HEADRACE_INVOKED_AS=%~f0"
for %%I in ("%~dp0..\..") do set "ROOT=%%~fI"
call "%~dp0environment.bat" "%ROOT%"
if not "%ERRORLEVEL%"=="0" exit /b 1
"%ROOT%\.venv\Scripts\python.exe" -P -m headrace.cli kafka-delete-records %*
exit /b %ERRORLEVEL%
