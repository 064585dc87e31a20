echo ok
if then
