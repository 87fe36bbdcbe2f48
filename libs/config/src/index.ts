export { checkAdminKey } from './admin-key.ts';
export { defaultDataFolder } from './data-folder.ts';
export { ConfigurationError } from './errors.ts';
export { type Configuration, isShortSecret, readConfiguration, unknownVariables } from './read-configuration.ts';
export { isLoopback, publicReason, type ServerMode, serverMode } from './server-mode.ts';
export { parseObjectAddress, type S3Address } from './object-address.ts';
export { loadTiers, type RunLimits, runLimitsOf, type TierLimits, type Tiers, UNLIMITED } from './tiers.ts';
export { hasCurrentTable } from './variables-table.ts';
export { type VariableKey } from './variables.ts';
