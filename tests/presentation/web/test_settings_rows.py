from presentation.web.settings_rows import SETTINGS


def test_every_setting_says_its_limits_in_the_unit_that_is_shown() -> None:
    limits = {setting.field: setting.limits(4) for setting in SETTINGS}
    assert limits["extract_share"] == "from 5 to 100 %"
    assert limits["kv_budget_bytes"] == "from 64 to 65,536 MB"
    assert limits["threads"] == "from 1 to 4 cores"
