SELECT carrier, delay AS d FROM flights ORDER BY 'd'
