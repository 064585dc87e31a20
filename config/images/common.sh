# What the scripts of this folder share; they source it.

# find_engine prints the name of the program that builds images.
find_engine() {
  local candidate
  for candidate in buildah podman docker; do
    if command -v $candidate >/dev/null && { [ $candidate != docker ] || docker info >/dev/null 2>&1; }; then
      echo $candidate
      return
    fi
  done
  say "buildah, podman or docker is needed (on Debian: apt-get install buildah)"
  return 1
}

# pack fills the folder TO, from which an image of the root file system in FROM
# is built, with the configuration that it has there.
pack() { # FROM TO
  tar --numeric-owner -C "$1/rootfs" -cf "$2/rootfs.tar" .
  {
    printf 'FROM scratch\nADD rootfs.tar /\n'
    jq -r '(.Env[] | split("=") | "ENV \(.[0])=\(.[1:] | join("=") | tojson)"), "WORKDIR \(.WorkingDir)", "USER \(.User)",
      (.Labels // {} | to_entries[] | "LABEL \(.key)=\(.value | tojson)")' "$1/config.json"
  } >"$2/Containerfile"
}
