SELECT carrier FROM flights QUALIFY RANK() OVER (ORDER BY delay) < 3 AND carrier IN (SELECT dest FROM flights)
