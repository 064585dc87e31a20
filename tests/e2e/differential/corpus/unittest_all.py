import unittest
class T(unittest.TestCase):
    def test_ok(self): self.assertEqual(1, 1)
    @unittest.skip("why not")
    def test_skip(self): pass
import sys
if __name__ == "__main__":
    r = unittest.main(exit=False, verbosity=0, argv=["x"], testRunner=unittest.TextTestRunner(stream=open("/dev/null","w"))).result
    print(r.testsRun, len(r.failures))
