SELECT f.dest FROM flights f JOIN weather w USING (dest, day, dest)
