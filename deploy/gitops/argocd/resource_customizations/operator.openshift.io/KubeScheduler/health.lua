-- From the conditions of OpenShift's operators, whose type ends in Degraded, Progressing or Available.
local health = { status = "Progressing" }

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "Pending deletion"
  return health
end
if obj.status == nil or obj.status.conditions == nil
    or obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "the operator has not observed this generation"
  return health
end

local state = obj.spec.managementState
local annotations = obj.metadata.annotations
if annotations ~= nil and annotations["kube-scheduler-operator.dev/management-state"] ~= nil then
  state = annotations["kube-scheduler-operator.dev/management-state"]
end
if state == "Unmanaged" or state == "Removed" then
  health.status = "Suspended"
  health.message = "the operator does not manage the scheduler: " .. state
  return health
end

local function ends(kind, suffix)
  return string.sub(kind, -#suffix) == suffix
end

local function first(suffix, status)
  for _, condition in ipairs(obj.status.conditions) do
    if ends(condition.type, suffix) and condition.status == status then
      return condition
    end
  end
  return nil
end

local function described(condition)
  local message = condition.type
  if condition.reason ~= nil and condition.reason ~= "" then
    message = message .. ": " .. condition.reason
  end
  if condition.message ~= nil and condition.message ~= "" then
    message = message .. ": " .. condition.message
  end
  return message
end

local degraded = first("Degraded", "True")
local progressing = first("Progressing", "True")
local unavailable = first("Available", "False")
if degraded ~= nil then
  health.status = "Degraded"
  health.message = described(degraded)
elseif progressing ~= nil then
  if progressing.reason == "Held" then
    health.status = "Suspended"
  end
  health.message = described(progressing)
elseif unavailable ~= nil then
  health.status = "Degraded"
  health.message = described(unavailable)
elseif first("Available", "True") == nil then
  health.message = "no condition states that the scheduler is available"
else
  health.status = "Healthy"
  health.message = "the configuration of this generation is in use"
end
return health
