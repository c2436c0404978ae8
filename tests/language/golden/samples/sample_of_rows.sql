SELECT dest FROM flights [ROWS 5] f SAMPLE(2.5)
