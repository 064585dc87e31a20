set -euo pipefail
echo start
false | true
echo never
