SELECT dest FROM flights SAMPLE(10) [RANGE 1 HOUR] AS f WHERE delay > 3
