SELECT COUNT(*) FROM flights WHERE delay > 15
