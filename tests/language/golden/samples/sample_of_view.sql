SELECT carrier FROM late SAMPLE(5) [ROWS 3]
