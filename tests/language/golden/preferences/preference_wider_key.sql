SELECT a.price FROM store1 a, store3 b WHERE a.itemno = b.itemno WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
