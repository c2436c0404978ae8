SELECT carrier FROM flights GROUP BY 2
