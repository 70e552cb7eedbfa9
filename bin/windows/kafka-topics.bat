@echo off
rem Kafka's name for this tool: headrace.bat sets itself up and runs it.
setlocal
set "HEADRACE_INVOKED_AS=%~f0"
call "%~dp0headrace.bat" kafka-topics %*
exit /b %ERRORLEVEL%
