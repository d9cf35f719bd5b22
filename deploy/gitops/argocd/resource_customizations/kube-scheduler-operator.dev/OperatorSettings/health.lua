-- The same for every kind of this group: from the conditions Ready, Reconciling and Stalled.
local health = { status = "Progressing" }

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "Pending deletion"
  return health
end

local conditions = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    conditions[condition.type] = condition
  end
end

local ready = conditions["Ready"]
if ready == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "kube-scheduler-operator has not observed this generation"
  return health
end

health.message = ready.reason or "Ready is " .. ready.status
if ready.message ~= nil and ready.message ~= "" then
  health.message = health.message .. ": " .. ready.message
end

local stalled = conditions["Stalled"]
if ready.status == "True" then
  health.status = "Healthy"
elseif stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
  if stalled.reason == "Held" then
    health.status = "Suspended"
  end
elseif ready.reason == "Unmanaged" or ready.reason == "Removed" then
  health.status = "Suspended"
end
return health
