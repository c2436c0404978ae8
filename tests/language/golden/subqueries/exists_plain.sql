SELECT carrier FROM flights WHERE EXISTS (SELECT COUNT(*) FROM flights WHERE cancelled HAVING COUNT(*) > 3)
