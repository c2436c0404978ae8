SELECT carrier FROM flights WHERE (ts AT TIME ZONE 'Europe/Berlin')::TIME < '06:00'
