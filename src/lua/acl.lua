-- include: commands
-- Whether this user may run the commands that the scripts need.

-- Returns an error that names the first command that the ACL denies or the server lacks, or nil; then, whether all commands were checked.
-- Servers before 7.0 cannot check, and the check ends at an unexpected error. BLPOP may be missing, because a waiter can poll.
local function denial()
  if not redis.acl_check_cmd then return nil, false end
  for _, command in ipairs(commands.list(HOLDERS, HOLDERS, HOLDERS, now)) do
    local checked, result = pcall(redis.acl_check_cmd, unpack(command))
    if checked and not result then return 'NOPERM this user has no permissions to run ' .. command[1] end
    if not checked then
      local why = type(result) == 'table' and result.err or tostring(result)
      if not string.find(why, 'Invalid command passed', 1, true) then return nil, false end
      if command[1] ~= 'BLPOP' then return 'ERR this server has no command ' .. command[1] end
    end
  end
  return nil, true
end

return {denial = denial}
