from scipy.stats import f_oneway, tukey_hsd
a, b, c = [5, 6, 7, 6], [8, 9, 9, 10], [5, 5, 6, 7]
assert f_oneway(a, b, c).pvalue < 0.01
print(tukey_hsd(a, b, c))
