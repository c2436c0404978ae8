SELECT carrier FROM flights WHERE delay > 3 AND dest IN (SELECT dest FROM flights [RANGE 1 HOUR] WHERE cancelled)
