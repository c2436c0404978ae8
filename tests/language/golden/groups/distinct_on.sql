SELECT DISTINCT ON (carrier) carrier FROM flights
