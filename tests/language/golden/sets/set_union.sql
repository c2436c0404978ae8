SELECT carrier, delay FROM flights UNION SELECT dest, wind FROM weather ORDER BY delay DESC LIMIT 3 EMIT CHANGES
