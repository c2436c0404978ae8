SELECT carrier FROM flights QUALIFY RANK() OVER (ORDER BY delay)
