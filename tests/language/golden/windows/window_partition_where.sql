SELECT carrier FROM flights [PARTITION BY UPPER(carrier), carrier, UPPER(carrier) ROWS 2 WHERE delay > 30]
