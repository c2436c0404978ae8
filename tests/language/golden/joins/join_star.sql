SELECT w.*, * FROM flights f JOIN weather w USING (dest, day)
