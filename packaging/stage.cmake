# Adds the files that Debian's policy requires. CPack runs this on the installed tree before it is packed.
set(doc ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/doc/noctule)
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)

file(COPY ${debian}/copyright DESTINATION ${doc})
file(MAKE_DIRECTORY ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/lintian/overrides)
file(COPY_FILE ${debian}/lintian-overrides ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/lintian/overrides/noctule)

# The Debian changelog has one entry with the date of the last release, so that the same tree gives the same package.
file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
file(STRINGS ${doc}/changelog released REGEX "^## [0-9.]+ - " LIMIT_COUNT 1)
string(REGEX REPLACE ".* - " "" released "${released}")
execute_process(COMMAND date --utc --rfc-email --date=${released}
    OUTPUT_VARIABLE released OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(version ${CPACK_DEBIAN_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
file(WRITE ${doc}/changelog.Debian
    "noctule (${version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${released}\n")

file(GLOB compressed ${doc}/changelog ${doc}/changelog.Debian ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/man/man?/*)
execute_process(COMMAND gzip --best --no-name ${compressed} COMMAND_ERROR_IS_FATAL ANY)
