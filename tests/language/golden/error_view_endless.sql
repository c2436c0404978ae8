SELECT * FROM endless
