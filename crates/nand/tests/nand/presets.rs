//! Configurations as users write them.

use softflash_nand::{ArrayConfig, ConfigError, FaultConfig, presets};

const SDF: &str = r#"
    [geometry]
    channels = 44
    chips_per_channel = 2
    planes_per_die = 2
    blocks_per_plane = 2048
    pages_per_block = 256
    page_bytes = 8192
    spare_bytes = 448

    [die]
    cell = "mlc"
    pairing = "shadow"
    read_ns = [75_000]
    program_ns = [1_017_900]
    erase_ns = 3_000_000
    cache_read = true

    [bus]
    bytes_per_second = 40_000_000
"#;

#[test]
fn a_preset_in_toml_is_the_one_in_code() {
    let config: ArrayConfig = toml::from_str(SDF).unwrap();
    assert_eq!(config, presets::sdf());
    assert_eq!((config.die_queue_depth(), presets::small().die_queue_depth()), (2, 1));
}

#[test]
fn presets_are_valid_and_survive_toml() {
    for config in [presets::sdf(), presets::small(), presets::tlc()] {
        config.validate().unwrap();
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<ArrayConfig>(&text).unwrap(), config, "{text}");
    }
}

#[test]
fn a_misspelt_field_is_refused() {
    let wrong = SDF.replace("erase_ns", "erase_nss");
    let told = toml::from_str::<ArrayConfig>(&wrong).unwrap_err().to_string();
    assert!(told.contains("erase_nss"), "{told}");
    assert!(toml::from_str::<FaultConfig>("program_failures = 0.1").is_err());
}

#[test]
fn faults_name_only_what_they_change() {
    let text = "program_failure = 1e-4\n[bit_errors]\nrber_fresh = 1e-5";
    let faults: FaultConfig = toml::from_str(text).unwrap();
    faults.validate().unwrap();
    assert_eq!((faults.program_failure, faults.erase_failure), (1e-4, 0.0));
    assert_eq!((faults.bit_errors.rber_fresh, faults.bit_errors.retry_steps), (1e-5, 8));
}

#[test]
fn what_cannot_be_built_is_told_in_the_users_words() {
    let told = |text: &str| {
        let config: ArrayConfig = toml::from_str(text).unwrap();
        config.validate().unwrap_err()
    };
    let empty = told(&SDF.replace("channels = 44", "channels = 0"));
    assert_eq!(empty.to_string(), "geometry: channels is 0; it must be at least 1");
    let odd = told(&SDF.replace("pages_per_block = 256", "pages_per_block = 255"));
    assert!(matches!(odd, ConfigError::Geometry(_)), "{odd}");
    let slow = told(&SDF.replace("40_000_000", "1"));
    assert!(matches!(slow, ConfigError::Timing(_)), "{slow}");
}
