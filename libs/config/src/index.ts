export { defaultDataFolder } from './data-folder.ts';
export * from './errors.ts';
export type { Kind, ListenAddress } from './kinds.ts';
export {
  isShortSecret,
  readConfiguration,
  unknownVariables,
  type Configuration,
  type ConfigurationSources,
} from './read-configuration.ts';
export * from './server-mode.ts';
export {
  loadTiers,
  runLimitsOf,
  TIER_NAMES,
  UNLIMITED,
  type RunLimits,
  type TierLimits,
  type TierName,
  type Tiers,
} from './tiers.ts';
export * from './variables-table.ts';
export { variables, type ServiceName, type ValueOf, type Variable, type VariableKey } from './variables.ts';
