SELECT carrier FROM flights a WHERE EXISTS (SELECT 1 FROM flights b WHERE b.delay > a.delay)
