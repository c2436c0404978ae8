SELECT * FROM store1 a JOIN store2 b ON a.itemno = b.itemno WITH PREFERENCE SUMMARY.Estimate.Count(itemno), SUMMARY.Estimate.Count(b.itemno)
