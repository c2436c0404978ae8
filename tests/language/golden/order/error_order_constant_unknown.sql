SELECT carrier FROM flights ORDER BY 'dellay'
