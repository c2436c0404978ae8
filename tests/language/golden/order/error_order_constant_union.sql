SELECT carrier FROM flights UNION SELECT dest FROM flights ORDER BY 'carrier'
