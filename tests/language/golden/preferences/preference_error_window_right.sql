SELECT * FROM store1 a JOIN store2 [RANGE 1 MINUTE] b ON a.itemno = b.itemno WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
