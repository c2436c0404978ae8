SELECT carrier FROM flights WHERE flight IN (SELECT now FROM "Odd Names")
