// SPDX-License-Identifier: MIT
// LuaFrame: what the scripts that Redis runs are made of, besides the algorithms' pieces.
#ifndef PENSTOCK_REDIS_LUA_FRAME_HPP
#define PENSTOCK_REDIS_LUA_FRAME_HPP

#include <penstock/config.hpp>

#include <cstdint>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// The scripts before the pieces are in: `$name` stands for what ScriptComposer puts there, `?` for a part's piece, `@`
/// for its number.
struct LuaFrame {
    /// For check and peek.
    static constexpr std::string_view check = R"lua(local call=redis.call
$now
local op,cost$time_argument,$plan=struct.unpack('<BI7$time_format$plan_format',ARGV[$last])
$read
$load
$divide
$advance
$check
$wait
$answer
local taken=cost
$join
if all and cost>0 and op==0 then
$write
end
$short_reply
local verdict=0
if not all then verdict=retry==1/0 and -1 or -1-retry end
if lag>0 then return {verdict,left,reset$limit,lag,lag} end
return {verdict,left,reset$limit}
)lua";

    /// For what is asked rarely: refund (2), charge (3), reserve (4) and reset (5).
    static constexpr std::string_view others = R"lua(local call=redis.call
$now
local op,cost,patience,more$time_argument,$plan=struct.unpack('<BI7I7I7$time_format$plan_format',ARGV[$last])
$read
$load
if op==5 then
  if old then call($forget) end
  return {}
end
$keep
$divide
$advance
local taken,wait,wait_lag=0,0,0
if op==2 then
  if cost>0 then
$refund
  end
elseif op==3 then
$charge
else
  taken=cost
$check
end
$wait
$reserve
$answer
$join
if cost>0 and (op==3 or all and (op~=2 or $did)) then
  if op==2 then
$restore
  end
$write
end
local verdict,verdict_lag=wait,wait_lag
if not all then verdict,verdict_lag=retry==1/0 and -1 or -1-retry,lag end
if lag>0 or verdict_lag>0 then return {verdict,left,reset$limit,lag,verdict_lag} end
return {verdict,left,reset$limit}
)lua";

    /// The state, of zeros if there is none.
    static constexpr std::string_view load = R"lua(
local $state
if old then
  if #old==$narrow_size then
    $state=struct.unpack('$narrow_load',old)
  elseif #old==$wide_size then
    $state=struct.unpack('$wide_load',old)
  end
  if not slow1 or $foreign then
    return redis.error_reply('PENSTOCK_FORMAT a newer version wrote this entry, or it is not ours')
  end
else
  $state=$zeros
end
)lua";

    /// Error-free products after Dekker (1971): the quotient is off by at most two, and its remainder exact.
    static constexpr std::string_view divide = R"lua(
local divide
if $large then
  local function product(x,y)
    local t=134217729*x
    local xh=t-(t-x)
    local xl=x-xh
    t=134217729*y
    local yh=t-(t-y)
    local yl=y-yh
    local p=x*y
    return p,((xh*yh-p)+xh*yl+xl*yh)+xl*yl
  end
  divide=function(a,b,c)
    local q=math.floor(a*b/c)
    local p,e=product(a,b)
    local h,f=product(q,c)
    local r=(p-h)+(e-f)
    while r<0 do q,r=q-1,r+c end
    while r>=c do q,r=q+1,r-c end
    return q,r
  end
end
)lua";

    static constexpr std::string_view reserve = R"lua(
if op==4 and $patient then
$take
end
)lua";
    static constexpr std::string_view take = R"lua(
if not ok@ then
  if retry@-wait>wait_lag-lag@ then wait,wait_lag=retry@,lag@ end
  ok@=true
  ?
end
)lua";

    /// One number where it holds all, as it nearly always does: a table takes a tenth of a check to make and to send.
    static constexpr std::string_view short_reply = R"lua(
if lag==0 then
  if all then
    local both=reset*(limit1+1)+left
    if both<9007199254740992 then return both end
  elseif left==0 and retry<94906265 and reset<94906265 then
    return -1-(reset*94906265+retry)
  end
end
)lua";
    static constexpr std::int64_t short_base = 94'906'265;  // its square is below 2^53

    /// `need` is the lifetime in ms: rounded up, with a second of slack.
    static constexpr std::string_view write = R"lua(
local fresh=$fresh
local need=(fresh-now)/1000
need=need-need%1+1001
if need<$least_need then need=$least_need elseif need>1125899906842624 then need=1125899906842624 end
$seconds
$sweep
local value
if $fits then
  value=struct.pack('$narrow_store',$stored)
else
  value=struct.pack('$wide_store',$stored)
end
$put
)lua";

    static constexpr std::string_view server_now = R"lua(
local time=call('TIME')
local now=time[1]*1000000+time[2]
)lua";

    static constexpr std::string_view get = "local old=call('GET',KEYS[1])";
    static constexpr std::string_view set = "call('SET',KEYS[1],value,'PX',need)";

    static constexpr std::string_view seconds = R"lua(
local seconds=4294967295
if fresh<4294967294000000 then seconds=(fresh-fresh%1000000)/1000000+1 end
)lua";

    /// A sweep drops what is fresh again. Then it waits until the bucket has grown by half, as field y tells.
    static constexpr std::string_view sweep = R"lua(
if not old then
  local count=call('HLEN',KEYS[1])
  if count>96 and count>(call('HGET',KEYS[1],'y') or 0)+0 then
    local all,gone=call('HGETALL',KEYS[1]),{}
    for i=1,#all,2 do
      local entry=all[i+1]
      if #all[i]==12 and #entry>5 and entry:byte(1)<192 then
        local at=struct.unpack('<I4',entry,2)
        if at<4294967295 and at*1000000<=now then gone[#gone+1]=all[i] end
      end
    end
    for i=1,#gone,1000 do call('HDEL',KEYS[1],unpack(gone,i,math.min(i+999,#gone))) end
    call('HSET',KEYS[1],'y',math.floor((count-#gone)*1.5))
  end
end
)lua";

    static constexpr std::string_view get_packed = "local old=call('HGET',KEYS[1],ARGV[1])";
    /// A bucket's TTL reaches twice as far as is needed at the time, so that it is hardly ever touched.
    static constexpr std::string_view put_packed = R"lua(
call('HSET',KEYS[1],ARGV[1],value)
if call('PTTL',KEYS[1])<need then call('PEXPIRE',KEYS[1],2*need) end
)lua";
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_LUA_FRAME_HPP
