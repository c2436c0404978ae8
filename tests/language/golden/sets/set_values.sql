SELECT carrier FROM flights UNION ALL VALUES ('AA')
