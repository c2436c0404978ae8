SELECT sensor, light FROM reading SAMPLE PERIOD 10 s
