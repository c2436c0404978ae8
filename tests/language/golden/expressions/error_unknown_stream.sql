SELECT * FROM flihgts
