SELECT carrier FROM flights ORDER BY delay DESC NULLS LAST, ts
