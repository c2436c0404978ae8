SELECT carrier FROM late [ROWS 10] l WHERE l.twice > 30
