# shellcheck shell=sh
# The source as every artefact is made from it: the same bytes for the same files, by any user, anywhere and at any time.
# The script that reads this file has set $top, the folder of CMakeLists.txt.
: "${top:?}"

# The version, as CMakeLists.txt has it.
source_version() {
  sed -n 's/^project(rlock VERSION \([0-9.]*\) .*/\1/p' "$top/CMakeLists.txt"
}

# The commit that --version names; of an unpacked tarball nobody knows it, unless the environment says it.
if [ -e "$top/.git" ]; then
  RLOCK_COMMIT=$(git -C "$top" rev-parse --short=12 HEAD 2>/dev/null) || RLOCK_COMMIT=""
  export RLOCK_COMMIT
fi

# The date of the newest entry of the package's changelog: that of everything that is made.
source_date() {
  date -d "$(sed -n 's/^ -- .*>  //p' "$top/packaging/debian/changelog" | head -n 1)" +%s
}

# The files of a clone as they lie there, or of an unpacked tarball.
source_files() {
  if [ -e "$top/.git" ]; then
    git -C "$top" ls-files --cached --others --exclude-standard
  else
    (cd "$top" && find . -path ./build -prune -o -path ./dist -prune -o -type f -printf '%P\n')
  fi | LC_ALL=C sort
}

# pack_source FILE: rlock-VERSION.tar.gz.
pack_source() {
  source_files | (cd "$top" && while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done |
    tar --create --no-recursion --format=ustar --files-from=- --transform "s,^,rlock-$(source_version)/," --mtime="@$(source_date)" \
      --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX) | gzip -9n >"$1"
}

# The project's address for the right side of sed's s,,,; empty if RLOCK_PROJECT_URL is not set.
project_address() {
  printf '%s' "${RLOCK_PROJECT_URL:-}" | sed 's/[&,\\]/\\&/g'
}

# fill_in_debian FOLDER: what debian/ of the package is. Without RLOCK_PROJECT_URL, the fields and files that name it are not there.
fill_in_debian() {
  cp -r "$top/packaging/debian" "$1"
  if [ -n "${RLOCK_PROJECT_URL:-}" ]; then
    sed -i "s,@PROJECT_URL@,$(project_address),g" "$1/control" "$1/watch" "$1/upstream/metadata"
  else
    sed -i '/@PROJECT_URL@/d' "$1/control"
    rm -r "$1/watch" "$1/upstream"
  fi
}

# fill_in FOLDER: the files from which other distributions build packages, and those for GitHub and GitLab CI, for the release in
# FOLDER. They find its files at RLOCK_RELEASE_URL. Without it, those of distributions find them in their own folder, and a CI job has to
# name the place. RLOCK_PROJECT_URL is their home page.
fill_in() {
  architecture=$(dpkg --print-architecture)
  case $architecture in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) machine=$architecture ;; esac
  archive=$1/rlock-$(source_version).tar.gz
  url=${RLOCK_RELEASE_URL:-}
  url=$(printf '%s' "${url%/}" | sed 's/[&,\\]/\\&/g')
  base=${url:+$url/}
  project=$(project_address)
  sum=$(sha256sum <"$archive" | cut -c 1-64)
  for template in "$top"/packaging/distributions/*.in; do
    sed -e "s,@BASE|\([^@]*\)@,${base:-\\1},g" -e "s,@PROJECT|\([^@]*\)@,${project:-\\1},g" \
      -e "${project:+s,@PROJECT_URL@,$project,g;}/@PROJECT_URL@/d" -e "s,@DAY@,$(LC_ALL=C date -u -d "@$(source_date)" '+%a %b %d %Y')," \
      -e "s,@VERSION@,$(source_version),g" -e "s,@ARCHITECTURE@,$architecture,g" \
      -e "s,@MACHINE@,$machine,g" -e "s,@SHA256@,$sum," \
      -e "s,@SHA256_BASE64@,$(printf '%s' "$sum" | tr '[:lower:]' '[:upper:]' | basenc --base16 --decode | base64)," \
      -e "s,@SHA512@,$(sha512sum <"$archive" | cut -c 1-128)," \
      -e "s,@SHA512_PROGRAM@,$(sha512sum <"$1/rlock-linux-$architecture" | cut -c 1-128)," "$template" >"$1/$(basename "$template" .in)"
  done
  # The examples in their heads name this version, and the place of its files becomes the default.
  for file in ci/github/action.yml ci/gitlab/templates/rlock.yml; do
    sed -e "s,https://files.example.org/rlock/[0-9.]*,${url:-https://files.example.org/rlock/$(source_version)}," \
      -e "s,rlock@[0-9.]*$,rlock@$(source_version)," "$top/packaging/$file" >"$1/$(basename "$file")"
    [ -z "$url" ] || sed -i -e "/^  release:/,/^  [^ ]/ s,required: true,default: '$url'," \
      -e "/^    release:/,/^    [^ ]/ s,^\( *\)regex: .*,&\n\1default: '$url'," "$1/$(basename "$file")"
  done
}
