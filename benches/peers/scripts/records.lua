-- Reads of one record of 1 KB by number; with --updates=true half of the operations overwrite one field of 100 bytes.

sysbench.cmdline.options = {
   records = {"Number of records", 100000},
   updates = {"Half of the operations update", false},
}

local fields = {}
for number = 0, 9 do
   fields[number + 1] = "field" .. number
end
local pattern = string.rep("@", 100)

function thread_init()
   connection = sysbench.sql.driver():connect()
   read = connection:prepare("SELECT " .. table.concat(fields, ", ") .. " FROM records WHERE id = ?")
   read_id = read:bind_create(sysbench.sql.type.INT)
   read:bind_param(read_id)
   if sysbench.opt.updates then
      update = connection:prepare("UPDATE records SET field0 = ? WHERE id = ?")
      update_value = update:bind_create(sysbench.sql.type.CHAR, 100)
      update_id = update:bind_create(sysbench.sql.type.INT)
      update:bind_param(update_value, update_id)
   end
end

function event()
   local id = sysbench.rand.uniform(1, sysbench.opt.records)
   if sysbench.opt.updates and sysbench.rand.uniform(0, 1) == 0 then
      update_value:set_rand_str(pattern)
      update_id:set(id)
      update:execute()
   else
      read_id:set(id)
      read:execute()
   end
end

function thread_done()
   read:close()
   if update then update:close() end
   connection:disconnect()
end
