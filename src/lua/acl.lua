-- include: begin commands
-- The error that names the first command that the scripts run and that the ACL denies or the server lacks, else nil and
-- whether each was checked: servers before 7.0 cannot, and a server that raises any other error is asked no further. BLPOP
-- may be missing, because a waiter can poll.
local function denial()
  if not redis.acl_check_cmd then return nil, false end
  for _, command in ipairs(commands_on(HOLDERS, HOLDERS, HOLDERS, now)) do
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
