# Copies FILES from ROOT to FOLDER and applies the patch FILE there. Leaves nothing behind when it does not apply.
file(REMOVE_RECURSE ${FOLDER})
foreach(file ${FILES})
  get_filename_component(below ${file} DIRECTORY)
  file(COPY ${ROOT}/${file} DESTINATION ${FOLDER}/${below})
  file(TOUCH ${FOLDER}/${file}) # a copy has the time of its original, and may look older than the patch
endforeach()
execute_process(
  COMMAND ${PATCH} --batch --forward --fuzz=0 --silent --no-backup-if-mismatch --reject-file=- -p1 -d ${FOLDER} -i ${FILE}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  file(REMOVE_RECURSE ${FOLDER})
  message(FATAL_ERROR "${FILE} does not apply any more: make the same change to today's sources\n${output}")
endif()
