export { defaultDataFolder } from './data-folder.ts';
export * from './errors.ts';
export { isShortSecret, readConfiguration, unknownVariables, type Configuration } from './read-configuration.ts';
export * from './server-mode.ts';
export { loadTiers, runLimitsOf, TIER_NAMES, UNLIMITED, type RunLimits, type TierLimits, type Tiers } from './tiers.ts';
export * from './variables-table.ts';
export { variables, type VariableKey } from './variables.ts';
