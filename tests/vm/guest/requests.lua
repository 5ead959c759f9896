-- Ends wrk when one of its threads has had its number of responses, instead of after whole seconds:
-- wrk -s requests.lua -d 30s URL -- NUMBER
local ffi = require("ffi")
ffi.cdef("int kill(int pid, int signal); int getpid(void);")
local interrupt = 2 -- wrk stops and reports
local wanted, had = 0, 0

function init(args) wanted = tonumber(args[1]) end

function response()
  had = had + 1
  if had >= wanted then
    wrk.thread:stop()
    ffi.C.kill(ffi.C.getpid(), interrupt)
  end
end
